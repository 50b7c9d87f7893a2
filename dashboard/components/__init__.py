"""Parts of pages: what several pages draw, or what is too long for one."""
