"""Any value as JSON text, by the rules of docs/results.md. Part of the Python guest (python.py)."""

import sys
from _json import encode_basestring

RESULT_MAX_BYTES = 8 << 20
DEPTH_MAX = 64  # containers around a value; more is refused by every reader behind us
MESSAGE_MAX = 4096  # characters of an error's text


class Unfit(Exception):
    """A value that cannot be sent: why, and where (from the inside out)."""

    def __init__(self, why, keep=None):
        self.why, self.keep, self.parts = why, keep, []

    def path(self):
        parts = self.parts[::-1][: self.keep]
        return "result" + "".join(parts)


class TooLarge(Exception):
    def __init__(self, size):
        self.size = size


def quote(text):
    """A JSON string literal. Surrogates that are no pair become U+FFFD."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return encode_basestring(text)


def describe(error):
    """An exception's text, whatever its methods do."""
    try:
        return str(error)[:MESSAGE_MAX]
    except BaseException:
        return "(its text cannot be had)"


def type_name(value):
    kind = type(value)
    module = type.__getattribute__(kind, "__module__")
    name = type.__getattribute__(kind, "__qualname__")
    return name if module in ("builtins", "__main__") else f"{module}.{name}"


def loaded(module, name):
    """A class of a module, if the snippet has loaded it; else a class that nothing is of."""
    return getattr(sys.modules.get(module), name, Unfit)


class Pairs(list):
    """(key, value) pairs that become an object."""


class Loose(list):
    """Values without an order of their own."""


class Encoder:
    """Any value as JSON text, by the rules of docs/results.md."""

    def __init__(self):
        self.around = []  # containers we are in
        self.left = RESULT_MAX_BYTES

    def spend(self, size):
        self.left -= size
        if self.left < 0:
            raise TooLarge(RESULT_MAX_BYTES - self.left)

    def encode(self, value):
        kind = type(value)
        if kind is str:
            self.spend(len(value))
            return quote(value)
        if value is None:
            return "null"
        if kind is bool:
            return "true" if value else "false"
        if kind is int:
            self.spend(value.bit_length() * 3 // 10)
            return int.__repr__(value)
        if kind is float:
            text = float.__repr__(value)
            return "null" if "n" in text else text  # nan, inf
        plain = value if kind in CONTAINERS else self.attempt(value)
        return self.container(plain, value) if type(plain) in CONTAINERS else self.encode(plain)

    def attempt(self, value):
        try:
            return self.simplify(value)
        except (Unfit, TooLarge):
            raise
        except BaseException as error:
            why = f"{type_name(error)}: {describe(error)}"
            raise Unfit(f"{type_name(value)} cannot be converted: {why}") from None

    def container(self, plain, value):
        kind, around = type(plain), self.around
        if len(around) == DEPTH_MAX:
            self.refuse_depth(value)
        self.spend(2 + len(plain))
        around.append(value)
        if kind is dict:
            text = self.pairs(dict.items(plain))
        elif kind is Pairs:
            text = self.pairs(plain)
        elif kind is Loose:
            text = self.loose(plain)
        else:
            text = f"[{','.join(self.items(plain))}]"
        around.pop()
        return text

    def refuse_depth(self, value):
        seen = [*self.around, value]
        for end in range(len(seen)):
            if any(seen[end] is earlier for earlier in seen[:end]):
                raise Unfit("circular reference", end)
        raise Unfit(f"nested more than {DEPTH_MAX} levels deep", 8)

    def items(self, values):
        kinds = set(map(type, values))
        if kinds == {str}:  # long lists of one kind, in C
            self.spend(sum(map(len, values)))
            return map(quote, values)
        if kinds == {int} and max(map(int.bit_length, values)) < 1024:
            return map(int.__repr__, values)
        texts = []
        for index, value in enumerate(values):
            try:
                texts.append(self.encode(value))
            except Unfit as error:
                error.parts.append(f"[{index}]")
                raise
        return texts

    def pairs(self, pairs):
        texts = {}
        for key, value in pairs:
            try:
                name = quote(key if type(key) is str else self.key(key))
                if name in texts:
                    raise Unfit(f"more than one key becomes {name}")
                self.spend(len(name))
                texts[name] = self.encode(value)
            except Unfit as error:
                error.parts.append(step(key))
                raise
        return "{" + ",".join([f"{name}:{text}" for name, text in texts.items()]) + "}"

    def loose(self, values):
        try:
            if {int, float, bool} >= set(map(type, values)):
                texts = map(self.encode, sorted(values))
            else:
                texts = sorted([self.encode(value) for value in values])
            return f"[{','.join(texts)}]"
        except Unfit as error:
            error.parts.append("[*]")
            raise

    def key(self, key):
        """The text of a mapping's key that is no str."""
        kind = type(key)
        if kind not in SCALARS:
            if kind.__str__ is object.__str__ or isinstance(key, (tuple, frozenset, bytes)):
                raise Unfit(f"a key of type {type_name(key)} has no text")
            key = self.attempt(key)
            if type(key) not in SCALARS:
                raise Unfit(f"a key of type {type_name(key)} has no text")
        return key if type(key) is str else self.encode(key)

    def drain(self, values):
        taken = []
        for value in values:
            taken.append(value)
            if len(taken) > self.left // 2:
                raise TooLarge(RESULT_MAX_BYTES + 1)
        return taken

    def simplify(self, value):
        """One step towards a scalar or a container."""
        kind = type(value)
        if isinstance(value, loaded("enum", "Enum")):
            return value.value
        for base, exact in EXACT:
            if isinstance(value, base):
                return exact(value)
        if isinstance(value, dict):
            return Pairs(dict.items(value))
        if isinstance(value, (list, tuple)):
            fields = getattr(kind, "_fields", None)
            if isinstance(value, tuple) and isinstance(fields, tuple):
                return Pairs(zip(fields, tuple.__iter__(value)))
            return list(value)
        if isinstance(value, (set, frozenset)):
            return Loose(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            if len(value) > self.left:
                raise TooLarge(len(value) * 4 // 3)
            return {"$bytes": base64(value)}
        if isinstance(value, BaseException):
            return {"name": kind.__name__, "message": str(value)}
        if hasattr(kind, "__dataclass_fields__"):
            own = loaded("dataclasses", "_FIELD")
            fields = kind.__dataclass_fields__.items()
            return Pairs([(n, getattr(value, n)) for n, f in fields if f._field_type is own])
        return self.simplify_library(value, kind)

    def simplify_library(self, value, kind):
        pandas, numpy = sys.modules.get("pandas"), sys.modules.get("numpy")
        if pandas is not None and kind.__module__.startswith("pandas."):
            if value is pandas.NaT or value is pandas.NA:
                return None
            if isinstance(value, (pandas.DataFrame, pandas.Series)):
                return frame_records(pandas, value)
            if hasattr(value, "tolist"):
                return value.tolist()
        if numpy is not None and isinstance(value, (numpy.generic, numpy.ndarray)):
            return numpy_plain(numpy, value)
        if isinstance(value, (loaded("datetime", "date"), loaded("datetime", "time"))):
            return value.isoformat()
        if hasattr(kind, "__await__"):
            raise Unfit(f"{type_name(value)} was not awaited")
        if hasattr(kind, "__aiter__"):
            raise Unfit(f"{type_name(value)} must be collected first: [x async for x in ...]")
        if kind is MappingProxy or isinstance(value, loaded("_collections_abc", "Mapping")):
            return Pairs([(key, value[key]) for key in self.drain(value)])
        if self.is_series(value, kind):
            return self.drain(value)
        return str(value)

    def is_series(self, value, kind):
        if kind in SERIES:
            return True
        if hasattr(kind, "read") or hasattr(kind, "encode"):  # files, UserString
            return False
        if hasattr(kind, "__iter__") and hasattr(kind, "__next__"):
            return True
        classes = [loaded("_collections_abc", name) for name in ("Sequence", "Set", "ValuesView")]
        return isinstance(value, (*classes, loaded("array", "array")))


CONTAINERS = frozenset((dict, list, tuple, Pairs, Loose))
SCALARS = frozenset((str, int, float, bool, type(None)))
MappingProxy = type(type.__dict__)
SERIES = frozenset((range, *(type(view) for view in ({}.keys(), {}.values(), {}.items()))))
EXACT = ((int, int.__int__), (float, float.__float__), (str, str.__str__))


def step(key):
    """One step of a path."""
    if type(key) is str and key.isidentifier():
        return "." + key
    if type(key) is str:
        return f"[{quote(key[:100])}]"
    return f"[{int.__repr__(key)}]" if type(key) is int else f"[{type_name(key)}]"


def base64(value):
    from binascii import b2a_base64  # needed by few

    return b2a_base64(value, newline=False).decode()


def numpy_plain(numpy, value):
    if value.dtype.kind == "M":
        return numpy.where(numpy.isnat(value), None, value.astype(str)).tolist()
    return value.tolist() if isinstance(value, numpy.ndarray) else value.item()


def frame_records(pandas, value):
    """Records of a data frame, values of a series. An index of integers without a name says nothing
    and is left out; any other comes first, as columns, or is the keys of a series."""
    index = value.index
    bare = index.nlevels == 1 and index.name is None and index.dtype.kind in "iu"
    if isinstance(value, pandas.Series):
        return value.tolist() if bare else Pairs(zip(index.tolist(), value.tolist()))
    if not bare:
        value = value.reset_index()
    names = value.columns.tolist()
    columns = [value.iloc[:, n].tolist() for n in range(len(names))]
    return [Pairs(zip(names, row)) for row in zip(*columns)]


def encode_result(value):
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        data = Encoder().encode(value).encode()
    finally:
        sys.set_int_max_str_digits(digits)
    if len(data) > RESULT_MAX_BYTES:
        raise TooLarge(len(data))
    return data


def convert(value):
    """(the value as JSON, None), or (None, the members of an error frame)."""
    try:
        return encode_result(value), None
    except Unfit as error:
        return None, {"kind": "ResultError", "message": error.why, "path": error.path()}
    except TooLarge as error:
        message = f"the result has {error.size} bytes or more, above the limit of {RESULT_MAX_BYTES}"
        more = {"size": error.size, "limit": RESULT_MAX_BYTES}
        return None, {"kind": "ResultTooLarge", "message": message, **more}
    except BaseException as error:
        return None, {"kind": "ResultError", "message": ": ".join(type_and_text(error))}


def type_and_text(error):
    return type_name(error), describe(error)
