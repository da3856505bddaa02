"""Other engines' tests in the format of sqllogictest, held to the answers published with them."""
