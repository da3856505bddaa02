"""How a rule's body follows the changes of what it reads."""
