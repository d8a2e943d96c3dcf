"""Put guard's hooks into agents' settings and among git's hooks, take them out, and check them."""
