from engine.config import RunConfig, fields, leaves


def test_every_leaf_of_the_tree_is_listed_once():
    paths = [field.path for field in fields()]
    assert paths == [path for path, _ in leaves(RunConfig())]
    assert len(set(paths)) == len(paths)


def test_every_field_has_a_sentence():
    assert [field.path for field in fields() if not field.sentence.endswith(".")] == []


def test_every_number_has_a_range():
    unbounded = [
        field.path
        for field in fields()
        if field.kind in ("int", "float") and (field.minimum is None or field.maximum is None)
    ]
    assert unbounded == []


def test_a_range_is_told_in_words():
    ranges = {field.path: field.range_text for field in fields()}
    assert ranges["grpo.epochs_per_rollout_batch"] == "1 to 64 epochs"
    assert ranges["grpo.clip_eps"] == "above 0 to below 1"
    assert ranges["grpo.train_batch_size"] == "1 to 65 536 completions, or empty"
    assert ranges["grpo.aggregation"] == "one of mean, constant, microbatch, token"
