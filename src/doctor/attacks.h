// attacks.h: the programs of attacks/, by name without the ending. Each is a Python snippet that
// returns the list of what it got through: [] when everything held. None does harm where it does.
#ifndef ISLE_DOCTOR_ATTACKS_H
#define ISLE_DOCTOR_ATTACKS_H

struct attack_text {
    const char *name, *text;
};
extern const struct attack_text attack_texts[]; // made by embed.py
extern const unsigned n_attack_texts;

#endif
