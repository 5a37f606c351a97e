"""Operators by the kind of work they are: which of their amounts the clock follows. Others count as element-wise."""

from __future__ import annotations

from superopt.ir.graph import Node, Value

_OPERATORS = {
    "view": "Reshape Squeeze Unsqueeze Flatten Identity Dropout Shape Size Constant",
    "function": """
        Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Tanh Sigmoid Erf Pow Softplus Mish Elu Selu Celu
        Gelu BiasGelu FastGelu QuickGelu Swish HardSwish Softsign Mod Sqrt Reciprocal""",
    "movement": """
        Transpose Concat Split Slice Pad Gather GatherND GatherElements Expand Tile DepthToSpace SpaceToDepth Resize
        Upsample ScatterND ScatterElements ConstantOfShape Range EyeLike OneHot Trilu Compress ReverseSequence""",
    "reduction": """
        ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
        ReduceSumSquare ArgMax ArgMin TopK CumSum GlobalAveragePool GlobalMaxPool GlobalLpPool Softmax LogSoftmax
        LpNormalization LayerNormalization SkipLayerNormalization RMSNormalization SimplifiedLayerNormalization
        SkipSimplifiedLayerNormalization GroupNormalization GroupNorm InstanceNormalization""",
    "channel-wise": "BatchNormalization",
    "pool": "MaxPool AveragePool LpPool",
    "convolution": "Conv FusedConv NhwcConv NhwcFusedConv ConvTranspose ConvInteger QLinearConv",
    "product": "MatMul Gemm FusedMatMul FusedGemm MatMulInteger MatMulIntegerToFloat QLinearMatMul",
    "einsum": "Einsum",
    "attention": "Attention MultiHeadAttention GroupQueryAttention",
    "recurrent": "LSTM GRU RNN",
}

KINDS = {op: kind for kind, operators in _OPERATORS.items() for op in operators.split()}

_ASKING = frozenset(("Shape", "Size", "Constant"))
"""Views that give something else than what they are given."""


def is_view(value: Value) -> bool:
    """Whether it is another one under another shape. It lies where that lies, but for a result of the model, which has
    a place of its own: there it is copied to."""
    node = value.producer
    return isinstance(node, Node) and KINDS.get(node.kind) == "view" and node.kind not in _ASKING
