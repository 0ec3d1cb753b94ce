"""A Python snippet with a top-level return, as the body of a function that behaves as module code.

Part of the guest (python.py), loaded only for such snippets. The function declares every name that
is bound at top level global, its locals() are made the globals, and what only module code may do
(annotated names, star imports, __future__) is put in other words of the same meaning.
"""

import _ast as ast

NAME, END = "<module>", "\0isle end"
CO_OPTIMIZED, CO_NEWLOCALS, CO_NESTED = 0x1, 0x2, 0x10
ONLY_AST = 0x400
START = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Parts of a node that do not run in the scope around it.
ELSEWHERE = {
    ast.FunctionDef: ("body", "type_params"),
    ast.AsyncFunctionDef: ("body", "type_params"),
    ast.ClassDef: ("body", "type_params"),
    ast.Lambda: ("body",),
    ast.TypeAlias: ("value", "type_params"),
    ast.comprehension: ("target",),
}


def compile_returning(source, path, end=None):
    """(code, prelude): `prelude` first, for docstring and __future__; it binds NAME for nothing. The
    code's value is `end` where it runs to its end."""
    from _warnings import filters  # the compiler has shown its warnings before

    filters.insert(0, ("ignore", None, SyntaxWarning, None, 0))
    try:
        return Lowering(path).lower(compile(source, path, "exec", ONLY_AST, True), end)
    finally:
        filters.pop(0)


class Lowering:
    def __init__(self, path):
        self.path = path
        self.names = set()  # bound at top level
        self.inner = {}  # placeholder constant: code object
        self.is_async = False
        self.future_annotations = False

    def lower(self, tree, end):
        body, head = tree.body, []
        if is_docstring(body[0]):
            head.append(body.pop(0))
        while is_future(body[0]):
            self.future_annotations |= any(n.name == "annotations" for n in body[0].names)
            head.append(body.pop(0))
        self.walk(tree)
        if self.names:
            body.insert(0, ast.Global(sorted(self.names), **START))
        if end is not None:
            self.inner[END] = end
            where = at(body[-1])
            body.append(ast.Return(ast.Constant(END, **where), **where))
        kind = ast.AsyncFunctionDef if self.is_async else ast.FunctionDef
        nothing = ast.arguments([], [], None, [], [], None, [])
        prelude = self.compile(*head, kind(NAME, nothing, body, [], None, None, [], **START))
        function = next(c for c in prelude.co_consts if type(c) is type(prelude))
        flags = function.co_flags & ~(CO_OPTIMIZED | CO_NEWLOCALS | CO_NESTED)
        return self.rename(function).replace(co_flags=flags), prelude

    def compile(self, *statements):
        return compile(ast.Module([*statements], []), self.path, "exec", 0, True)

    def rename(self, code):
        """Qualified names as in module code; placeholders replaced."""
        kind, prefix = type(code), NAME + ".<locals>."
        consts = tuple(
            self.rename(c) if type(c) is kind else self.inner.get(c, c) if type(c) is str else c for c in code.co_consts
        )
        return code.replace(co_consts=consts, co_qualname=code.co_qualname.removeprefix(prefix))

    def walk(self, tree):
        """Collects the names and rewords the statements of everything in the snippet's own scope."""
        pending = [tree]
        while pending:
            node = pending.pop()
            self.note(node)
            if type(node) is ast.GeneratorExp:  # its parts run when it is iterated
                pending.append(node.generators[0].iter)
                pending += assigned_within(node)
                continue
            skip = ELSEWHERE.get(type(node), ())
            for field in node._fields:
                value = None if field in skip else getattr(node, field, None)
                if type(value) is list:
                    if value and isinstance(value[0], ast.stmt):
                        value[:] = [new for old in value for new in self.reword(old)]
                    pending += [item for item in value if isinstance(item, ast.AST)]
                elif isinstance(value, ast.AST):
                    pending.append(value)

    def note(self, node):
        kind = type(node)
        if kind is ast.Name:
            if type(node.ctx) is not ast.Load:
                self.names.add(node.id)
        elif kind in SCOPES:
            self.names.add(node.name)
        elif kind is ast.Import or kind is ast.ImportFrom:
            self.names.update((n.asname or n.name).partition(".")[0] for n in node.names)
        elif kind in (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping):
            name = node.rest if kind is ast.MatchMapping else node.name
            if name is not None:
                self.names.add(name)
        elif kind in (ast.Await, ast.AsyncFor, ast.AsyncWith):
            self.is_async = True
        elif kind is ast.comprehension:
            self.is_async |= bool(node.is_async)
        elif kind is ast.Yield or kind is ast.YieldFrom:  # a function may, module code may not
            self.compile(ast.Expr(node, **at(node)))

    def reword(self, statement):
        if type(statement) is ast.AnnAssign:
            return self.reword_annotated(statement)
        if type(statement) is ast.ImportFrom and statement.names[0].name == "*":
            where = at(statement)
            mark = f"\0isle star import {len(self.inner)}"
            self.inner[mark] = self.compile(statement)
            name, code = ast.Name("exec", ast.Load(), **where), ast.Constant(mark, **where)
            return [ast.Expr(ast.Call(name, [code], [], **where), **where)]
        return [statement]

    def reword_annotated(self, statement):
        """`x: T = v` stores v, then T in __annotations__; `x.y: T = v` evaluates T for nothing."""
        where, target, out = at(statement), statement.target, []
        if statement.value is not None:
            out.append(ast.Assign([target], statement.value, **where))
        elif type(target) is not ast.Name:
            out.append(ast.Expr(target.value, **where))
        if statement.simple:
            value = statement.annotation
            if self.future_annotations:
                value = ast.Constant(self.annotation_text(statement), **where)
            names = ast.Name("__annotations__", ast.Load(), **where)
            key = ast.Constant(target.id, **where)
            out.append(ast.Assign([ast.Subscript(names, key, ast.Store(), **where)], value, **where))
        elif not self.future_annotations:
            out.append(ast.Expr(statement.annotation, **where))
        return out or [ast.Pass(**where)]

    def annotation_text(self, statement):
        """The text that the compiler itself makes of an annotation under the __future__ import."""
        where = at(statement)
        future = ast.ImportFrom("__future__", [ast.alias("annotations", **where)], 0, **where)
        alone = ast.AnnAssign(statement.target, statement.annotation, None, 1, **where)
        scope = {}
        exec(self.compile(future, alone), scope)
        return scope["__annotations__"][statement.target.id]


def assigned_within(generator):
    """Targets of assignment expressions inside a generator expression: they bind outside of it."""
    pending = [generator]
    while pending:
        node = pending.pop()
        if type(node) is ast.NamedExpr:
            yield node.target
        if type(node) is not ast.Lambda:
            for field in node._fields:
                value = getattr(node, field, None)
                items = value if type(value) is list else (value,)
                pending += [item for item in items if isinstance(item, ast.AST)]


def is_docstring(node):
    return type(node) is ast.Expr and type(node.value) is ast.Constant and type(node.value.value) is str


def is_future(node):
    return type(node) is ast.ImportFrom and node.module == "__future__"


def at(node):
    """Where a node stands, for those put in its place."""
    return {
        "lineno": node.lineno,
        "col_offset": node.col_offset,
        "end_lineno": node.end_lineno,
        "end_col_offset": node.end_col_offset,
    }
