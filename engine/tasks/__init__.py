"""Where problems and prompts come from."""
