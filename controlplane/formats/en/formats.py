"""Times to the second, in the order in which they sort."""

DATETIME_FORMAT = "Y-m-d H:i:s"
