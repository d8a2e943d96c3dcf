"""Agents whose truth is known, watched for days on a clock that is made up.

Everything that decides is the product's own: what is noise, the assessment, the rhythm, the lessons, the clocks, outages and
the record of prompts. Made up are the agents, the machines that they run on, and the signs that they leave.
"""
