"""The test settings, with static files straight from disk and two pages more: a bare log view and a bare feed."""

from controlplane import settings as product
from tests.settings import *  # noqa: F403

MIDDLEWARE = product.MIDDLEWARE
SERVESTATIC_AUTOREFRESH = True
SERVESTATIC_USE_FINDERS = True
ROOT_URLCONF = "tests.web.page_urls"
