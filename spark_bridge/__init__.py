"""The engine inside Spark.

To come: one-off and maintained joins over Spark DataFrames, by way of Arrow.  This
will be the only package that imports pyspark.  Nothing is here yet.
"""
