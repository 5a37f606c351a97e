"""Finding rules offline, by machine: recipe → enumerate → fingerprint → pair → generalize → prune → prove → write."""
