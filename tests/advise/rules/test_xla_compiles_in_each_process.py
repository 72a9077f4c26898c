def test_fires_without_a_cache(make):
    make.span("xla_compile", 1, 5, phase="xla", compilations=3)
    match = make.match("xla_compiles_in_each_process")
    assert match.saves_ns == 5_000_000_000
    assert match.evidence["compilations"] == 3


def test_silent_with_a_cache(make):
    make.environment["env"] = {"TF_XLA_FLAGS": "--tf_xla_persistent_cache_directory=cache"}
    make.span("xla_compile", 1, 5, phase="xla", compilations=3)
    assert make.matches("xla_compiles_in_each_process") == []


def test_silent_on_a_short_compilation(make):
    make.span("xla_compile", 1, 0.2, phase="xla", compilations=3)
    assert make.matches("xla_compiles_in_each_process") == []
