"""Changes of relations: staged, netted, and as tables that users see."""
