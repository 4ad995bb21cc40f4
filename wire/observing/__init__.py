"""What is told of each exchange: counted, logged, put on the current span, recorded; and beside what an upstream sorts."""
