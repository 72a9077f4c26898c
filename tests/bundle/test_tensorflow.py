"""The parts of the bundle that make claims about TensorFlow, held against TensorFlow itself."""

from __future__ import annotations

import re

import pytest

from glowplug.bundle import allowlist, graphscan
from glowplug.bundle.reader import open_bundle

from .samples import GOLDEN

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def golden_graph(tf):
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, (None, 2), name="x")
        kernel = tf.compat.v1.placeholder(tf.float32, (2, 3), name="weights/kernel")
        bias = tf.compat.v1.placeholder(tf.float32, (3,), name="weights/bias")
        tf.compat.v1.placeholder(tf.float64, (0, 4), name="weights/empty")
        tf.nn.relu(tf.linalg.matmul(x, kernel) + bias, name="y")
        path = tf.compat.v1.placeholder(tf.string, (), name="vocab_path")
        table = tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="vocab", name="table")
        tf.raw_ops.InitializeTableFromTextFileV2(
            table_handle=table, filename=path, key_index=-2, value_index=-1, name="init_table"
        )
        text = tf.compat.v1.placeholder(tf.string, None, name="text")
        default = tf.constant(-1, tf.int64)
        tf.raw_ops.LookupTableFindV2(table_handle=table, keys=text, default_value=default, name="ids")
        tf.no_op(name="done")
    return graph.as_graph_def()


def registered_ops():
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return {op.name: op for op in ops.op}


def reference_scan(definition):
    def nodes(items):
        return [graphscan.Node(one.name, one.op, tuple(one.input)) for one in items]

    functions = {one.signature.name: nodes(one.node_def) for one in definition.library.function}
    return nodes(definition.node), functions


def test_golden_graph_is_what_tensorflow_makes(tf):
    committed = tf.compat.v1.GraphDef.FromString((GOLDEN / "graph.pb").read_bytes())
    assert committed == golden_graph(tf)


def test_golden_bundle_runs(tf):
    bundle = open_bundle(GOLDEN)
    weights = bundle.map_weights()
    feeds = {
        f"{one.node}:0": tf.io.decode_raw(weights[one.offset : one.offset + one.nbytes], one.dtype)
        .numpy()
        .reshape(one.shape)
        for one in bundle.manifest.tensors
    }
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.graph_util.import_graph_def(tf.compat.v1.GraphDef.FromString(bundle.graph_bytes()), name="")
        (asset,) = bundle.manifest.assets
        session.run("init_table", {f"{asset.node}:0": str(bundle.asset_path(asset))})
        assert session.run("y:0", {**feeds, "x:0": [[1.0, 1.0]]}).tolist() == [[5.5, 7.5, 9.5]]
        assert session.run("ids:0", {"text:0": [b"green", b"pink"]}).tolist() == [1, -1]


def test_scan_agrees_with_protobuf_on_a_graph_with_functions(tf):
    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32)])
    def body(x):
        return tf.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, tf.cond(y[0] > 0, lambda: y * 2, lambda: y)), (0, x)
        )[1]

    definition = body.get_concrete_function().graph.as_graph_def()
    found = graphscan.scan(definition.SerializeToString())
    nodes, functions = reference_scan(definition)
    assert list(found.nodes.values()) == nodes
    assert {name: list(one.nodes) for name, one in found.functions.items()} == functions
    assert len(functions) >= 4
    allowlist.check_ops(found)


def test_scan_survives_every_field_that_protobuf_writes(tf):
    definition = golden_graph(tf)
    definition.version = -1
    definition.node[0].device = "/device:CPU:0" * 40
    definition.node[0].experimental_debug_info.original_node_names.append("z")
    definition.node[0].attr["_note"].s = b"\xff" * 70_000
    added = definition.library.function.add()
    added.signature.name = "double_1"
    added.signature.is_stateful = True
    added.signature.description = "text"
    added.signature.input_arg.add().name = "x"
    added.signature.control_output.append("c")
    added.ret["y"] = "x"
    added.control_ret["c"] = "n"
    added.attr["_a"].b = True
    added.arg_attr[0].attr["_b"].i = -5
    added.resource_arg_unique_id[0] = 7
    added.node_def.add(name="n", op="NoOp")
    definition.library.gradient.add(function_name="double_1", gradient_func="double_1")
    definition.library.registered_gradients.add(gradient_func="double_1", registered_op_type="Mul")
    found = graphscan.scan(definition.SerializeToString())
    assert reference_scan(definition) == (
        list(found.nodes.values()),
        {name: list(one.nodes) for name, one in found.functions.items()},
    )


def test_every_allowed_op_is_registered():
    assert allowlist.allowed_ops() <= registered_ops().keys()


def test_no_allowed_op_takes_a_file_name_or_a_graph(tf):
    suspicious = re.compile(r"file|path|director|descriptor|memory_region|graph|url|address|stream")

    def texts(op):
        yield from (one.name for one in op.attr if one.type in ("string", "list(string)"))
        yield from (one.name for one in op.input_arg if one.type in (tf.string.as_datatype_enum, 0))

    ops = registered_ops()
    found = {name for name in allowlist.allowed_ops() if any(suspicious.search(one) for one in texts(ops[name]))}
    assert found == {"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"}
    left_out = {
        "ReadFile",
        "ImmutableConst",
        "FixedUnigramCandidateSampler",
        "PrintV2",
        "DecodeProtoV2",
        "SaveV2",
    }
    assert all(any(suspicious.search(one) for one in texts(ops[name])) for name in left_out - {"SaveV2"})
    assert not left_out & allowlist.allowed_ops()


def test_every_registered_op_name_is_refused_as_a_function_name():
    accepted = [name for name in registered_ops() if not allowlist.OP_NAME.fullmatch(name)]
    assert accepted == []


def test_functions_that_tensorflow_names_are_accepted(tf):
    @tf.function
    def Body(x):
        with tf.name_scope("Upper"):
            return tf.cond(x > 0, lambda: x, lambda: tf.while_loop(lambda y: y < 0, lambda y: y + 1, [x])[0])

    concrete = Body.get_concrete_function(tf.TensorSpec((), tf.float32))
    names = [one.signature.name for one in concrete.graph.as_graph_def().library.function]
    names.append(concrete.function_def.signature.name)
    assert len(names) >= 5
    assert [name for name in names if allowlist.OP_NAME.fullmatch(name)] == []
