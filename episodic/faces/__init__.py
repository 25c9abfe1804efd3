"""The faces: how people and programs reach a log. They never import one another."""
