"""What is told of each exchange: counted, logged, put on a span, recorded; and compared with what an upstream sorts."""
