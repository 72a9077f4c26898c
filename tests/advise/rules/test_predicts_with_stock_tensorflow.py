def service(make, *, mode="predict", kind="keras", server=True):
    make.span("module", 0.2, 3, phase="import", name="keras", module="keras")
    if server:
        make.span("module", 3.3, 0.1, phase="import", name="uvicorn", module="uvicorn")
    load = make.span("load", 4, 2, path="models/digits.keras", format=kind, site="app.py:9")
    make.span("model", 4.5, 1, within=load)
    make.step(7, 1, 1, mode=mode)


def test_fires_on_a_service(make):
    service(make)
    match = make.match("predicts_with_stock_tensorflow")
    assert match.saves_ns == 5_600_000_000  # import, load and first call, less what a bundle needs
    assert match.remedy.command == "glowplug pack models/digits.keras -o digits.glow"
    assert "glowplug serve NAME=digits.glow" in match.remedy.text
    assert "the service only asks at app.py:9" in match.title
    assert match.evidence["server"] == "uvicorn"


def test_fires_on_a_program_that_is_no_service(make):
    service(make, server=False)
    match = make.match("predicts_with_stock_tensorflow")
    assert "serve" not in match.remedy.text


def test_silent_where_it_trains(make):
    service(make, mode="train")
    assert make.matches("predicts_with_stock_tensorflow") == []


def test_silent_where_it_builds_a_model_of_its_own(make):
    service(make)
    make.span("model", 6.5, 0.1)
    assert make.matches("predicts_with_stock_tensorflow") == []


def test_silent_on_weights(make):
    service(make, kind="weights_h5")
    assert make.matches("predicts_with_stock_tensorflow") == []
