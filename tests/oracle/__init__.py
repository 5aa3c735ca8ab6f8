"""Who may see what, told a second time and compared with the system step by step."""
