"""The ASGI shell round an `Exchange`: raw model text inside, the three trays outside.

`SieveMiddleware` takes its settings as keywords, `EnvironmentSieveMiddleware` from the environment.
Nothing is imported but the standard library, `streamsieve.wire` and what that needs.
"""

from streamsieve.middleware.environment import EnvironmentSieveMiddleware
from streamsieve.middleware.sieve import SieveMiddleware

__all__ = ["EnvironmentSieveMiddleware", "SieveMiddleware"]
