"""What a hostile tenant tries: each attack is a function in one of the modules here, registered by its decorator."""
