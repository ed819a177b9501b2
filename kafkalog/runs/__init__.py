"""The run dir: what runs leave behind for later ones, outside of every log dir."""
