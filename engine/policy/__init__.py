"""The language model: loading and saving of weights and tokenizer."""
