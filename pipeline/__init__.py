"""goplanes: archives of Go game records to training sets of packed feature planes.

From Python: ``build(config)``, ``open_dataset(path)``, ``encode_position(setup, moves, scheme=...)``,
``augment(planes, policy, value)`` and ``predict_with_symmetry(model, planes)``.
"""
