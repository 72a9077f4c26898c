"""A program that has nothing to gain."""

import json

print(json.dumps(sorted(range(1000))[:3]))
