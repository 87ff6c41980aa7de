"""The expressions of formulas: read, checked, and worked out.

An expression is arithmetic as Python writes it, and nothing else of Python: numbers, names,
``+ - * / **``, comparisons, ``a if condition else b``, and calls of `FUNCTIONS`. A name stands for
a number or for a list of them.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from .. import ratios
from ..suggest import did_you_mean

#: A number, or those of several cells.
Value = float | Sequence[float]

#: Longest expression, in characters.
LONGEST = 300


def rank(value: float, column: Sequence[float]) -> int:
    """Place of a value when the largest comes first, 1 for the largest."""
    return 1 + sum(other > value for other in column)


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's coefficient of two columns."""
    a, b = (math.fsum(column) / len(column) for column in (first, second))
    covariance = math.fsum((x - a) * (y - b) for x, y in zip(first, second, strict=True))
    spread = math.fsum((x - a) ** 2 for x in first) * math.fsum((y - b) ** 2 for y in second)
    return covariance / math.sqrt(spread)


def settled(values: Sequence[float], within: float) -> int:
    """Number, from 1, of the first value that no later one is below by more than a part ``within``."""
    return next((n for n, v in enumerate(values, 1) if v <= min(values[n - 1 :]) * (1 + within)), len(values))


def rise(values: Sequence[float]) -> float:
    """The largest part by which a value exceeds the least before it; below 0 where each is less."""
    return max(v / min(values[:n]) - 1 for n, v in enumerate(values) if n)


#: What can be called, for a number or a list. The first five take numbers, lists of them, or both.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "sum": lambda *values: math.fsum(flat(values)),
    "min": lambda *values: min(flat(values)),
    "max": lambda *values: max(flat(values)),
    "mean": lambda *values: math.fsum(flat(values)) / len(flat(values)),
    "count": lambda *values: len(flat(values)),
    "ceil": math.ceil,
    "floor": math.floor,
    "sqrt": math.sqrt,
    "rank": rank,
    "correlation": correlation,
    "settled": settled,
    "rise": rise,
    "geomean": ratios.geomean,
    "mean_error": ratios.mean_error,
    "percentile_error": ratios.percentile_error,
    "within": ratios.within,
    "near": ratios.near,
}
WHAT = f"numbers, names, + - * / **, comparisons, `a if b else c`, and {', '.join(FUNCTIONS)}"


def flat(values: Sequence[Value]) -> list[float]:
    return [v for value in values for v in (value if isinstance(value, Sequence) else (value,))]


def power(base: float, exponent: float) -> float:
    """``base ** exponent``. Raises OverflowError where a float is too small for it, whole numbers included."""
    size = float(base) ** exponent
    if isinstance(size, complex):
        raise ValueError("no real number")
    exact: float = base**exponent if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0 else size
    return exact


OPERATORS: dict[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: power,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@cache
def parsed(text: str) -> ast.expr:
    """An expression as a tree of what is allowed. Raises ValueError that says what is not."""
    if len(text) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters; make several cells of it")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"no expression ({getattr(error, 'msg', error)}); it is made of {WHAT}") from None
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id not in FUNCTIONS:
            raise ValueError(
                f"no function {called.id!r}{did_you_mean(called.id, FUNCTIONS)}; there are {', '.join(FUNCTIONS)}"
            )
        if not _allowed(node):
            raise ValueError(f"`{ast.unparse(node)}` cannot stand in it; it is made of {WHAT}")
    return tree


def _allowed(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=value):
            return type(value) in (int, float)
        case ast.BinOp(op=op) | ast.Compare(ops=[op]):
            return type(op) in OPERATORS
        case (
            ast.Call(func=ast.Name(), keywords=[]) | ast.UnaryOp(op=ast.USub()) | ast.IfExp() | ast.Name() | ast.Load()
        ):
            return True
        case _:
            # An operator is judged with what it works on.
            return isinstance(node, ast.operator | ast.cmpop | ast.unaryop)


def names(text: str) -> list[str]:
    """The names in an expression, functions not among them; each once, in order."""
    tree = parsed(text)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions]
    return list(dict.fromkeys(node.id for node in sorted(found, key=lambda node: (node.lineno, node.col_offset))))


def value(text: str, names: Mapping[str, Value]) -> float:
    """An expression's value. Raises ArithmeticError or ValueError where it has none, and TypeError
    where a list stands for a number."""
    return _number(parsed(text), names)


def _number(node: ast.expr, names: Mapping[str, Value]) -> float:
    found = _value(node, names)
    if isinstance(found, Sequence):
        raise TypeError(
            f"`{ast.unparse(node)}` is several cells where a number is wanted; sum, mean, min, max make one"
        )
    return found


def _value(node: ast.expr, names: Mapping[str, Value]) -> Value:
    match node:
        case ast.Name(id=name):
            return names[name]
        case ast.Constant(value=int() | float() as constant):
            return constant
        case ast.UnaryOp(operand=operand):
            return -_number(operand, names)
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            found = OPERATORS[type(op)](_number(left, names), _number(right, names))
            return int(found) if isinstance(found, bool) else found
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _number(body if _number(test, names) else orelse, names)
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return FUNCTIONS[function](*(_value(argument, names) for argument in arguments))
    raise AssertionError(ast.dump(node))
