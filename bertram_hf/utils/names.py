"""Names of files that several packages read."""

CONFIG_NAME = "config.json"
PROCESSOR_NAME = "processor_config.json"
MASKED_LM_NAME = "masked_lm.json"  # what the training of a masked-LM head says of itself
TRAINING_NAME = "training.json"  # what a training run says of itself; each of its keys may be missing
