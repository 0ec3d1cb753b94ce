// fixture.h: a made-up host below a temporary folder.
#ifndef ISLE_TESTS_START_FIXTURE_H
#define ISLE_TESTS_START_FIXTURE_H

// cmocka fixtures: make and remove fixture_root.
extern int fixture_root;
int fixture_setup(void **state);
int fixture_teardown(void **state);

// Writes a file, with its folders.
void fixture_put(const char *path, const char *text);
// Makes a folder, with those above it.
void fixture_folder(const char *path);

#endif
