// Which commands are rewritten, refused, and left alone.
#include "agent/shell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void becomes(const char *command, const char *want)
{
    AUTO_BUF struct buf out = BUF_INIT(4096);
    struct agent_refusal why = {""};
    bool changed = false;
    int r = shell_rewrite(command, strlen(command), &out, &changed, &why);
    if (r != 0 || strcmp(buf_text(&out), want) != 0 || changed != (strcmp(command, want) != 0)) {
        fail_msg("%s: %d %s, not %s", command, r, buf_text(&out), want);
    }
}

static void find_and_pip_are_rewritten(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"find /", "find /workspace"},
        {"find / -name '*.py'", "find /workspace -name '*.py'"},
        {"find  /\t-name x 2>/dev/null", "find  /workspace\t-name x 2>/dev/null"},
        {"cd x && find / -type f; echo /", "cd x && find /workspace -type f; echo /"},
        {"find -L '/' -name x", "find -L /workspace -name x"},
        {"sudo find / \\( -name a -o -name b \\)",
         "sudo find /workspace \\( -name a -o -name b \\)"},
        {"A=1 /usr/bin/find / >out", "A=1 /usr/bin/find /workspace >out"},
        {"if find / -name x; then :; fi", "if find /workspace -name x; then :; fi"},
        {"pip install x", "python3 -m pip install x"},
        {"pip3 install -q 'a>=1' && pip install b",
         "python3 -m pip install -q 'a>=1' && python3 -m pip install b"},
        {"pip install x 2>&1 | tail -5", "python3 -m pip install x 2>&1 | tail -5"},
        {"A=$(pip install x) pip install y",
         "A=$(python3 -m pip install x) python3 -m pip install y"},
        {"(pip install x)", "(python3 -m pip install x)"},
        {"ls a[1-3] && [[ -f x ]] && find / -newer x",
         "ls a[1-3] && [[ -f x ]] && find /workspace -newer x"},
        {"cat <<'EOF'\nx\\\nEOF\nfind /", "cat <<'EOF'\nx\\\nEOF\nfind /workspace"},
        {"timeout 60 pip install x", "timeout 60 python3 -m pip install x"},
        {"cat <<EOF >f\nfind /\npip install x\nEOF\npip install y",
         "cat <<EOF >f\nfind /\npip install x\nEOF\npython3 -m pip install y"},
        {"cat <<-'E O'\n\tfind -- /\n\tE O\nfind /",
         "cat <<-'E O'\n\tfind -- /\n\tE O\nfind /workspace"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        becomes(cases[i][0], cases[i][1]);
    }
}

static void others_stay(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "ls /",
        "find . -name x",
        "find /workspace",
        "find /usr -name x",
        "find /etc/../etc",
        "echo find /",
        "echo 'find /'",
        "echo \"find /\"",
        "# find /",
        "echo a # ; find -- /",
        "grep -r / notes",
        "grep -e / x",
        "grep -rn / .",
        "grep x /",
        "rg / src",
        "du -sh /workspace",
        "du -d 1 x",
        "ls -R",
        "ls -lR /workspace",
        "ls -l /",
        "tree",
        "tree -L 2 /workspace",
        "python3 -c 'find /'",
        "pip list",
        "./pip install x",
        "pip",
        "pipx install x",
        "case x in a) find // ;; esac",
        "f() { find //; }",
        "a=(find //)",
        "((find //))",
        "find \"$D\"",
        "find $D/",
        "find // \"",
        "echo `echo \\`find //\\``",
        "find //\\",
        "grep -r --include='*.c' x src",
        "find . -path / -prune",
        "find . -newer /",
        "x=${y:-$(find //)}",
        "cat <<EOF\nfind //",
        "cat <<'A' <<'B'\nfind //\nA\nfind //\nB\n",
        "echo $((2 * 3)) a",
        "find {/,}",
        "find ~/",
        "[[ a =~ (b|c) ]] && find //",
        "cat > find /",
        "echo \\\nfind //",
        "git log --grep find -- /",
        "awk '{print $1 / 2}' f",
        "sed 's#/#//#' f",
        "cat <(echo find //)",
        // a line of a here-document that goes on, and is not its end
        "cat <<EOF\nx\\\nEOF\nfind /\nEOF\n",
        "cat <<EOF $(echo\nfind /\nEOF\n)\nEOF\n",
        // words of arithmetic
        "echo $[8 & find / -2]",
        "a[1 & find / -2]=5",
        "[[ a == b || find =~ // ]]",
        // words that are programs' names and their arguments
        "\"a=b\" find /",
        "'if' find /",
        "A=1 then pip install x",
        "nice A=1 find /",
        "function find { echo \"$@\"; }; find /",
        "shopt -s expand_aliases\nalias pip=echo\npip install x",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        becomes(cases[i], cases[i]);
    }
}

static void other_scans_are_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "find -- /",
        "find //",
        "find /.",
        "find /./",
        "find /..",
        "find /*",
        "find / /workspace",
        "find . /",
        "find / | head",
        "find / |& head",
        "echo x | xargs -0 | find /",
        "a |\nfind /",
        "echo $(find / -name x)",
        "echo \"$(find / -name x)\"",
        "X=`find /`",
        "(find /)",
        "cat <(find /)",
        "find / -delete",
        "find / -name x -exec rm {} +",
        "find \"//\"",
        "\\find //",
        "ls -R /",
        "ls -laR /",
        "ls --recursive -l /",
        "ls / -R",
        "grep -r x /",
        "grep -rn 'a b' //",
        "grep --recursive -e x /",
        "grep -A 3 -R x /.",
        "egrep -ri x /",
        "rg x /",
        "rg -n x / src",
        "du /",
        "du -sh /",
        "du -sh /*",
        "du -d 1 /",
        "tree /",
        "tree -L 2 /",
        "true; du -h / 2>/dev/null",
        "pip install x; find // -name y",
        "fi''nd //",
        "for i in a; do find //; done",
        "cat <<A\nA\ndu /",
        "time find //",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF struct buf out = BUF_INIT(4096);
        struct agent_refusal why = {""};
        bool changed = false;
        int r = shell_rewrite(cases[i], strlen(cases[i]), &out, &changed, &why);
        if (r != AGENT_REFUSED || !strstr(why.text, "/workspace") || out.len > 0) {
            fail_msg("%s: %d %s", cases[i], r, buf_text(&out));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find_and_pip_are_rewritten),
        cmocka_unit_test(others_stay),
        cmocka_unit_test(other_scans_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
