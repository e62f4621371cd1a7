"""What streams have in them without anybody having said it: periods, patterns, clusters, shapes, peaks (STEAM 2002, section 7.2)."""
