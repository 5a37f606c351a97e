"""Steps from one form of the tables to the next. What was released is not edited; another step is added."""
