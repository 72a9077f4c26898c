def rising(rounds):
    return [1.0] + [0.01 * (index + 1) for index in range(rounds - 1)]


def test_names_the_line_and_the_slope(make):
    make.loop("session_run", rising(100), graph_ops=16, adders={"loop.py:9": 1500, "loop.py:3": 20})
    match = make.match("graph_grows_each_round")
    assert match.evidence["graph_ops_per_round"] == 16
    assert match.evidence["added_at"] == {"loop.py:9": 1500, "loop.py:3": 20}
    assert "loop.py:9" in match.title
    assert 35_000_000_000 < match.saves_ns < 50_000_000_000


def test_reports_a_process_once(make):
    make.loop("session_run", rising(50), graph_ops=16)
    make.loop("variables_initializer", rising(50), graph_ops=16, site="train.py:8")
    make.match("graph_grows_each_round")


def test_silent_on_a_graph_that_stays(make):
    make.loop("session_run", rising(50))
    assert make.matches("graph_grows_each_round") == []


def test_silent_on_three_rounds(make):
    make.loop("session_run", [1, 1, 1], graph_ops=16)
    assert make.matches("graph_grows_each_round") == []
