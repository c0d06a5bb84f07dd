"""What the end-to-end tests share: a server process, its REST API, MQTT on the wire, load, damage."""
