"""Sources of raw model text, and the application that serves any of them with the middleware on top."""
