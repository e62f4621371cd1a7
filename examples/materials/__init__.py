"""Hazardous materials in boxes, found by their spectra: the application of STEAM 2002, section 7."""
