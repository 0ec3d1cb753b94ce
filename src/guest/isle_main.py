"""A snippet whose result is what its function main returns: calls it, or says without running
anything what would be in the way. Part of the guest (python.py), loaded only for these."""

import _ast as ast

ONLY_AST = 0x400
CO_COROUTINE, CO_VARARGS = 0x80, 0x4
Function = type(lambda: None)
NO_MAIN = "the code defines no function main: the outputs are what main(inputs) returns"
RETURNED = "a top-level return was reached: the outputs are what main returns"
TREE_BYTES = 200_000  # of code: a tree is some hundred times as large
# With these a program can define main where no parser sees it.
MAY_DEFINE = frozenset(
    """__builtins__ __dict__ __getattribute__ __globals__ __import__ __main__ __setattr__ _getframe
    attrgetter currentframe eval exec f_globals getattr globals import_module locals modules run_path
    setattr vars""".split()
)
KINDS = {ast.List: "list", ast.Tuple: "tuple", ast.Dict: "dict", ast.Set: "set", ast.JoinedStr: "str"}
NO_FUNCTIONS = (ast.Constant, *KINDS)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def value_of(snippet, code, names, end):
    """The value of main, once the top level has run to its end, where its value is `end`. All that
    is awaited is so in one loop."""
    if not code.co_flags & CO_COROUTINE:
        value = call_main(snippet, names, eval(code, names) is end)
        return __import__("asyncio").run(settled(value)) if hasattr(type(value), "__await__") else value
    with __import__("asyncio").Runner() as runner:
        value = call_main(snippet, names, runner.run(eval(code, names)) is end)
        return runner.run(settled(value)) if hasattr(type(value), "__await__") else value


async def settled(awaitable):
    return await awaitable


def call_main(snippet, names, ended):
    main = names.get("main")
    if not ended:
        snippet.refuse(RETURNED)
    if main is None:
        snippet.refuse(NO_MAIN)
    if not callable(main):
        snippet.refuse(no_function(type(main).__name__))
    takes, needed = signature(main)
    if needed:
        snippet.refuse(needs_more(needed))
    return main(snippet.params) if takes else main()


def no_function(kind):
    return f"main is no function: it is of type {kind}"


def needs_more(names):
    return f"main needs {', '.join(names)}: it is called with one argument, the inputs"


def signature(main):
    """(does it take an argument, the names that it needs and does not get). What cannot be known:
    yes, none."""
    if type(main) is not Function:
        return signature_of_object(main)
    code, wrapped = main.__code__, vars(main).get("__wrapped__")
    positional, rest = code.co_argcount, code.co_flags & CO_VARARGS
    first = code.co_varnames[: positional - len(main.__defaults__ or ())]
    keywords = code.co_varnames[positional : positional + code.co_kwonlyargcount]
    keywords = [name for name in keywords if name not in (main.__kwdefaults__ or {})]
    if rest and not positional and type(wrapped) is Function and wrapped is not main:
        return takes_behind(wrapped), keywords  # a decorator that passes on what it is given
    return bool(positional or rest), [*(first if len(first) > 1 else ()), *keywords]


def takes_behind(main):
    for _ in range(100):
        code, wrapped = main.__code__, vars(main).get("__wrapped__")
        if code.co_argcount or not code.co_flags & CO_VARARGS or type(wrapped) is not Function:
            break
        main = wrapped
    return bool(code.co_argcount or code.co_flags & CO_VARARGS)


def signature_of_object(main):
    try:
        given = __import__("inspect").signature(main).parameters.values()
    except Exception:
        return True, ()
    positional = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    first = [p.name for p in positional if p.default is p.empty]
    keywords = [p.name for p in given if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    takes = bool(positional) or any(p.kind is p.VAR_POSITIONAL for p in given)
    return takes, [*(first if len(first) > 1 else ()), *keywords]


def check(source, path, compile_snippet):
    """{"errors": [{"message", "line"}]}: only what is certain."""
    try:
        compile_snippet(source, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        text = getattr(error, "msg", None) or str(error)
        return {"errors": [{"message": f"{type(error).__name__}: {text}", "line": getattr(error, "lineno", None)}]}
    try:
        tree = compile(source, path, "exec", ONLY_AST, True) if len(source) <= TREE_BYTES else None
    except (RecursionError, MemoryError):  # though the compiler took it
        tree = None
    fault = fault_of_text(source, path) if tree is None else fault_of(tree, source, path)
    return {"errors": [{"message": fault[0], "line": fault[1]}] if fault else []}


def fault_of_text(source, path):
    """What is certain of code whose tree is not to be had."""
    text = source.translate(None, b" \t\f\\\r\n")
    if any(word.encode() in text for word in (*MAY_DEFINE, ":=", "import*")) or is_bound(source, path):
        return None
    return NO_MAIN, None


def fault_of(tree, source, path):
    """(message, line) or None."""
    for statement in tree.body:
        if type(statement) is ast.Return:
            return RETURNED, statement.lineno
    nodes = list(nodes_of(tree))
    if any(map(may_define, nodes)):
        return None
    if not (is_bound(source, path) or any(map(is_assigned, nodes))):
        return NO_MAIN, None
    binders = [node for node in nodes if binds_main(node)]
    for statement in tree.body:
        message = fault_of_binder(statement, binders[0]) if len(binders) == 1 else None
        if message:
            return message, statement.lineno
    return None


def fault_of_binder(statement, binder):
    """Of the one statement that makes main a name."""
    if type(statement) is ast.Assign and statement.targets[0] is binder and isinstance(statement.value, NO_FUNCTIONS):
        return no_function(KINDS.get(type(statement.value)) or type(statement.value.value).__name__)
    if statement is not binder or type(statement) not in FUNCTIONS or statement.decorator_list:
        return None
    given = statement.args
    positional = [a.arg for a in (*given.posonlyargs, *given.args)]
    first = positional[: len(positional) - len(given.defaults)]
    keywords = [a.arg for a, initial in zip(given.kwonlyargs, given.kw_defaults) if initial is None]
    needed = [*(first if len(first) > 1 else ()), *keywords]
    return needs_more(needed) if needed else None


def nodes_of(tree):
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field, None)
            items = value if type(value) is list else (value,)
            pending += [item for item in items if isinstance(item, ast.AST)]


def is_bound(source, path):
    """Whether the compiler knows a place where main becomes a name of the module."""
    import _symtable as symbols

    top = symbols.symtable(source, path, "exec")
    if top.symbols.get("main", 0) & symbols.DEF_BOUND:
        return True
    pending = list(top.children)
    while pending:
        table = pending.pop()
        flags = table.symbols.get("main", 0)
        if flags & symbols.DEF_GLOBAL and flags & symbols.DEF_BOUND:
            return True
        pending += table.children
    return False


def is_assigned(node):
    """By an expression: in a comprehension of the top level, the module's."""
    return type(node) is ast.NamedExpr and node.target.id == "main"


def may_define(node):
    kind = type(node)
    if kind is ast.Name:
        return node.id in MAY_DEFINE
    if kind is ast.Attribute:
        return node.attr in MAY_DEFINE
    return kind is ast.alias and (node.name == "*" or node.name in MAY_DEFINE)


def binds_main(node):
    """Whether it can make main a name, in whichever scope."""
    kind = type(node)
    if kind is ast.Name:
        return node.id == "main" and type(node.ctx) is not ast.Load
    if kind in (ast.Global, ast.Nonlocal):
        return "main" in node.names
    if kind is ast.alias:
        return (node.asname or node.name.partition(".")[0]) == "main"
    return kind not in (ast.Attribute, ast.keyword, ast.arg) and "main" in (
        getattr(node, "name", None),
        getattr(node, "rest", None),
    )
