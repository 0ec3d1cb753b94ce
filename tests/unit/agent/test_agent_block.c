// Blocks: text, the anchor, and the lines they are; or why not.
#include "agent.h"
#include "agent/block.h"

struct found {
    const char *path, *text;
    uint32_t line, first, last; // first 0: refused
};

static void check(const struct found *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct found *c = &cases[i];
        struct text t;
        struct agent_refusal why = {""};
        struct block b = {0};
        assert_int_equal(text_init(&t, c->text, strlen(c->text), &why), 0);
        int r = block_find(&t, c->path, c->line, &b, &why);
        if (r != (c->first ? 0 : AGENT_REFUSED) || b.first != c->first || b.last != c->last) {
            fail_msg("case %zu, line %u of\n%s\nis %u-%u, not %u-%u (%s)", i, c->line, c->text,
                     b.first, b.last, c->first, c->last, why.text);
        }
        text_done(&t);
    }
}

static void python(void **state)
{
    (void)state;
    static const struct found cases[] = {
        {"a.py", "def f():\n    a\n\n    b\n\nc\n", 1, 1, 4},
        {"a.py", "@x\n@y(\n 1)\ndef f():\n    a\nc\n", 4, 1, 5},
        {"a.py", "@x\n@y(\n 1)\ndef f():\n    a\nc\n", 2, 1, 5},
        {"a.py", "def f(\n  a,\n):\n    s = '''\nx\n'''\n    b\nc\n", 1, 1, 7},
        {"a.py", "def f(\n  a,\n):\n    b\n", 2, 0, 0},
        {"a.py", "x = [\n 1,\n]\ny\n", 1, 1, 3},
        {"a.py", "x = 1\ny\n", 1, 0, 0},
        {"a.py", "if a:\n  b\nelif c:\n  d\nelse:\n  e\nf\n", 1, 1, 6},
        {"a.py", "if a:\n  b\nelif c:\n  d\nelse:\n  e\nf\n", 3, 3, 4},
        {"a.py", "class A:\n  def f(self):\n    a\n# no\n  def g(self):\n    b\n# end\nx\n", 1, 1,
         6},
        {"a.py", "class A:\n  def f(self):\n    a\n  def g(self):\n    b\n", 2, 2, 3},
        {"a.py", "if a: b\nc\n", 1, 1, 1},
        {"a.py", "x = 'a\nb\n", 1, 0, 0},
        {"a.py", "def f():\n  a\nx = (\n", 1, 0, 0},
        {"a.py", "def f():\n  a)\n", 1, 0, 0},
        {"a.py", "def f():\n        a\n\tb\n", 1, 1, 3},
        {"a.py", "if a:\n\tdef f():\n        a\n", 2, 0, 0},
        {"a.py", "def f():\n  s = 'it\\'s # no' # '\n  t = \"\"\"a\\\"\"\"\"\nx\n", 1, 1, 3},
        {"run", "#!/usr/bin/env python3\ndef f():\n  a\n", 2, 2, 3},
        {"a.py", "match x:\n  case 1:\n    a\n  case 2:\n    b\n", 2, 2, 3},
        {"a.py", "# c\nx\n", 1, 0, 0},
        {"a.py", "if a:\n  b\nelse1 = c\n", 1, 1, 2},
        {"a.py", "if a:\n  b\nelseIf(c)\n", 1, 1, 2},
        {"a.py", "if a:\n  b\nelse_\xc3\xa4 = c\n", 1, 1, 2},
        {"a.py", "\nx\n", 1, 0, 0},
    };
    check(cases, sizeof cases / sizeof *cases);
}

static void markdown(void **state)
{
    (void)state;
    static const struct found cases[] = {
        {"a.md", "# A\n1. b\n---\nc\n", 1, 1, 4},
        {"a.md", "# A\nb\n===\nc\n", 1, 1, 1},
        {"a.md", "# A\na\n\n## B\nb\n\n# C\nc\n", 1, 1, 5},
        {"a.md", "# A\na\n\n## B\nb\n\n# C\nc\n", 4, 4, 5},
        {"a.md", "# A\n```\n# no\n```\nb\n# C\n", 1, 1, 5},
        {"a.md", "# A\n```\n# no\n```\nb\n# C\n", 2, 2, 4},
        {"a.md", "# A\n```\n# no\n", 3, 0, 0},
        {"a.md", "# A\n```\n# no\n", 2, 0, 0},
        {"a.md", "A\n===\na\nB\n---\nb\nC\n===\n", 1, 1, 6},
        {"a.md", "A\n===\na\nB\n---\nb\nC\n===\n", 4, 4, 6},
        {"a.md", "---\nt: 1\n---\n# A\na\n", 4, 4, 5},
        {"a.md", "text\n", 1, 0, 0},
        {"a.md", "#no\n", 1, 0, 0},
    };
    check(cases, sizeof cases / sizeof *cases);
}

static void braces(void **state)
{
    (void)state;
    static const struct found cases[] = {
        {"a.c", "int f(void)\n{\n    a('}');\n}\nint x;\n", 1, 1, 4},
        {"a.c", "int f(int a,\n      int b)\n{\n    a;\n}\nint x;\n", 1, 1, 5},
        {"a.c", "if (a) {\n  b;\n} else {\n  c;\n}\nd;\n", 1, 1, 5},
        {"a.c", "if (a) {\n  b;\n}\nelse {\n  c;\n}\nd;\n", 1, 1, 6},
        {"a.c", "if (a) {\n  b;\n} else {\n  c;\n}\n", 3, 0, 0},
        {"a.c", "int x = 1;\nint f() {\n}\n", 1, 0, 0},
        {"a.c", "f() {\n  /* } */ // }\n  \"}\";\n}\n", 1, 1, 4},
        {"a.c", "f() {\n  g() {\n  }}\n", 2, 0, 0},
        {"a.c", "f() {\n", 1, 0, 0},
        {"a.c", "f() {\n}\ng() {\n", 1, 0, 0},
        {"a.c", "/* f() {\n} */\n", 1, 0, 0},
        {"a.cpp", "int f() {\n  return 1'000;\n}\n", 1, 1, 3},
        {"a.cpp", "int f() {\n  return R\"(})\";\n}\n", 1, 0, 0},
        {"a.js", "f(function () {\n  a();\n});\nb();\n", 1, 1, 3},
        {"a.js", "function f() {\n  return `}${g({a: `}`})}`;\n}\nb();\n", 1, 1, 3},
        {"a.js", "function f() {\n  return /[}/]}/.test(a) / 2;\n}\n", 1, 1, 3},
        {"a.js", "let a = 1\nfunction f() {\n}\n", 1, 0, 0},
        {"a.ts", "const a = [\n  1,\n];\n", 1, 1, 3},
        {"a.js", "x = `\nf() {\n}\n`;\n", 2, 0, 0},
        {"a.rs", "fn f<'a>(x: &'a str) -> char {\n    '}'\n}\n", 1, 1, 3},
        {"a.rs", "fn f() {\n    r#\"}\"\"#;\n}\n", 1, 1, 3},
        {"a.go", "func f() {\n\ts := `}\n}`\n}\n", 1, 1, 4},
        {"a.java", "void f() {\n  s = \"\"\"\n  }\n  \"\"\";\n}\n", 1, 1, 5},
        {"a.css", "a {\n  b: c;\n}\nd { e: f; }\n", 4, 4, 4},
        {"a.json", "{\n  \"a\": {\n    \"b\": 1\n  },\n  \"c\": 2\n}\n", 2, 2, 4},
        {"a.c", "f(\"\n}", 1, 0, 0},
        // else, catch and while belong to it, wherever their braces stand, or it is none
        {"a.c", "if (a)\n{\n  b;\n}\nelse if (c)\n{\n  d;\n}\ne;\n", 1, 1, 8},
        {"a.cs", "try\n{\n  a;\n}\ncatch (E e)\n{\n  b;\n}\nfinally\n{\n  c;\n}\nd;\n", 1, 1, 12},
        {"a.c", "if (a) {\n  b;\n} else c;\nd;\n", 1, 1, 3},
        {"a.c", "if (a) {\n  b;\n} else\n  c;\nd;\n", 1, 0, 0},
        {"a.c", "if (a) {\n  b;\n}\nelse\n  c;\nd;\n", 1, 0, 0},
        {"a.c", "if (a) {\n  b;\n} else if (c)\n  d;\ne;\n", 1, 0, 0},
        {"a.c", "do {\n  a;\n} while (b);\nwhile (c) {\n}\n", 1, 1, 3},
        {"a.c", "do {\n  a;\n}\nwhile (b);\nc;\n", 1, 0, 0},
        {"a.js", "a(b => {\n}).catch(c => {\n});\nd();\n", 1, 1, 3},
        {"a.rs", "fn f() {\n  br\"{\\\";\n}\nfn g() {\n  cr#\"}\"#;\n}\n", 1, 1, 3},
    };
    check(cases, sizeof cases / sizeof *cases);
}

static void indentation(void **state)
{
    (void)state;
    static const struct found cases[] = {
        {"a.yml", "a:\n  b: 1\n\n  c: 2\n\nd: 3\n", 1, 1, 4},
        {"a.yml", "a:\n  b: 1\nd: 3\n", 3, 0, 0},
        {"a.sh", "if a; then\n  b\nfi\n", 1, 0, 0},
        {"a.sh", "f() {\n  b\n}\n", 1, 0, 0},
        {"a.rb", "def a\n  b\nend\n", 1, 0, 0},
        {"a.txt", "a\n        b\n\tc\n", 2, 0, 0},
        {"a.txt", "  a\n\tb\n", 1, 0, 0},
    };
    check(cases, sizeof cases / sizeof *cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python),
        cmocka_unit_test(markdown),
        cmocka_unit_test(braces),
        cmocka_unit_test(indentation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
