"""What parity sidecars say of files, and the scrub of folders by them."""
