"""Ask a network of sensor motes a question in SQL; the answer streams back."""
