"""The same without the import."""

import json

print(json.dumps({"tensorflow": "tensorflow"}))
