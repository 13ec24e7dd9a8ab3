"""Deliberately broken variants of a solution: one small change of its syntax tree each."""

import ast
import copy

_SWAPPED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.Pow: ast.Mult,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def mutants(code):
    """Yield programs that differ from `code` in one operator, constant or returned value, the subtle changes first."""
    tree = ast.parse(code)
    for kind in (ast.BinOp, ast.Compare, ast.BoolOp, ast.Constant, ast.Return):
        for position, node in enumerate(ast.walk(tree)):
            if isinstance(node, kind) and _changeable(node):
                changed = copy.deepcopy(tree)
                _change(list(ast.walk(changed))[position])
                yield ast.unparse(ast.fix_missing_locations(changed))


def _changeable(node):
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in _SWAPPED
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return type(node.op) in _SWAPPED
    return not isinstance(node, ast.Constant) or type(node.value) in (int, float)


def _change(node):
    if isinstance(node, ast.Compare):
        node.ops[0] = _SWAPPED[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = _SWAPPED[type(node.op)]()
    elif isinstance(node, ast.Constant):
        node.value += 1
    else:
        node.value = ast.Constant("broken")
