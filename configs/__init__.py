"""The example configurations; installed as ``pipeline.presets``, they are the presets of ``goplanes build``."""
