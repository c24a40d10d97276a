"""What a user of script mode writes: arguments from hyperparameters, places from the environment."""

import argparse
import os
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--name")
parser.add_argument("--fail", type=int, default=0)
parser.add_argument("--train", default=os.environ["SM_CHANNEL_TRAIN"])
arguments = parser.parse_args()
print("arguments", sys.argv[1:])
print("data", open(os.path.join(arguments.train, "part")).read())
print("host", os.environ["SM_CURRENT_HOST"], os.environ["SM_NETWORK_INTERFACE_NAME"], os.environ["SM_HP_EPOCHS"])
print("lies in", os.path.dirname(os.path.abspath(__file__)))
if arguments.fail:
    raise ValueError("the labels are missing")
with open(os.path.join(os.environ["SM_MODEL_DIR"], "model.txt"), "w") as model:
    model.write(f"{arguments.name} after {arguments.epochs}")
