def workers(make, *, apart):
    for index in range(3):
        pid = 200 + index
        make.process(pid, apart * index, 20, private_bytes=600 << 20)
        make.span("load", apart * index + 1, 2, pid=pid, path="m", format="saved_model", stored_bytes=100 << 20)


def test_fires_on_copies_held_at_once(make):
    workers(make, apart=1)
    match = make.match("weights_private_to_each_worker")
    assert match.saves_bytes == 200 << 20
    assert match.evidence["at_once"] == 3
    assert match.remedy.command == "glowplug pack m -o m.glow"
    assert "glowplug serve NAME=m.glow --instances 3" in match.remedy.text


def test_silent_one_after_the_other(make):
    workers(make, apart=30)
    assert make.matches("weights_private_to_each_worker") == []
