"""What queries cannot be, though they parse."""
