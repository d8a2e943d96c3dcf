"""The agents' own settings files: guard's hooks put into them, taken out of them, and looked after."""
