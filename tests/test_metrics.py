from engine.metrics import METRICS, family_of, metric_of


def test_a_metric_of_an_evaluation_is_defined_for_either_split_and_every_k():
    found = metric_of("eval/test/pass@1024")
    assert (found.name, found.title, found.unit) == ("eval/test/pass@1024", "Pass@1024", "share")
    assert found.sentence.startswith("Chance that at least one of 1024 sampled answers")
    assert metric_of("eval/validation/majority@6").title == "Majority@6"
    assert metric_of("eval/test/accuracy").sentence == metric_of("eval/validation/accuracy").sentence


def test_a_metric_outside_of_families_is_its_own():
    assert metric_of("kl") == METRICS["kl"]
    assert family_of("rewards/format/mean") == "rewards/format/mean"


def test_a_metric_that_is_not_in_the_list_stands_for_itself():
    assert (metric_of("eval/train/accuracy").title, metric_of("mine").unit) == ("eval/train/accuracy", "")
