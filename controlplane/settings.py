"""Django's settings, all derived from ROLLCALL_*, DATABASE_URL and REDIS_URL; the home is made on first use."""

import os
from pathlib import Path

from controlplane import home
from controlplane.databases import database, pools
from controlplane.logline import told_elsewhere, without_refusal
from replicas.config import Config

BASE_DIR = Path(__file__).resolve().parent.parent
ROLLCALL = Config.from_env(os.environ)
home.prepare(ROLLCALL)

# What this process is: web, pool, controller or command. The supervisor tells its children.
PROCESS = os.environ.get("ROLLCALL_PROCESS", "command")

SECRET_KEY = os.environ.get("ROLLCALL_SECRET_KEY") or home.secret_key(ROLLCALL)
DEBUG = ROLLCALL.debug
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *ROLLCALL.allowed_hosts]

INSTALLED_APPS = [
    "controlplane",  # before the others, since some of its commands take the place of theirs
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django_q",
    "replicas",
]
if PROCESS not in {"pool", "controller"}:  # those answer no browser: a sixth of their start and some memory less
    INSTALLED_APPS = [
        "controlplane.administration.Administration",
        "django.contrib.sessions",
        "django.contrib.messages",
        "servestatic",
        "django.contrib.staticfiles",
        "channels",
        "csp",
        "django_ace",
        "django_htmx",
        *INSTALLED_APPS,
    ]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "replicas.web.unreadable.readable",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "replicas.web.middleware.origin",
]
ROOT_URLCONF = "controlplane.urls"
ASGI_APPLICATION = "controlplane.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": database(ROLLCALL, os.environ.get("DATABASE_URL", ""), PROCESS)}
SQLITE = DATABASES["default"]["ENGINE"].endswith("sqlite3")
Q_CLUSTER = pools(ROLLCALL, os.environ.get("REDIS_URL", ""))
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = "controlplane.formats"
USE_TZ = True

STATIC_URL = "/static/"
# One build serves all homes, unless the installation is not ours to write to.
STATIC_ROOT = (BASE_DIR if os.access(BASE_DIR, os.W_OK) else ROLLCALL.home) / "staticfiles"
if "ROLLCALL_STATIC_ROOT" in os.environ:
    STATIC_ROOT = Path(os.environ["ROLLCALL_STATIC_ROOT"])
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "controlplane.static.HashedStorage"
    },
}
SERVESTATIC_ALLOW_ALL_ORIGINS = False

LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# Cookies know no port: the name keeps two installations on one host apart.
SESSION_COOKIE_NAME = f"rollcall_session_{ROLLCALL.digest[:6]}"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = ROLLCALL.https
CSRF_COOKIE_NAME = f"rollcall_csrf_{ROLLCALL.digest[:6]}"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "replicas.web.access.out_of_date"
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_COOKIE_SECURE = ROLLCALL.https
CSRF_TRUSTED_ORIGINS = [f"https://{name}" for name in ROLLCALL.allowed_hosts] if ROLLCALL.https else []
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "connect-src": ["'self'"],
        "worker-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# What a command prints is its result, so records of commands go to stderr, and only those that matter.
COMMAND = PROCESS == "command"
LEVEL = "WARNING" if COMMAND and ROLLCALL.log_level == "INFO" else ROLLCALL.log_level
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "told": {"()": "django.utils.log.CallbackFilter", "callback": told_elsewhere},
        "refusal": {"()": "django.utils.log.CallbackFilter", "callback": without_refusal},
    },
    "formatters": {"line": {"()": "controlplane.logline.LineFormatter"}},
    "handlers": {
        "out": {
            "class": "logging.StreamHandler",
            "stream": "ext://sys.stderr" if COMMAND else "ext://sys.stdout",
            "formatter": "line",
            "filters": ["refusal"],
        }
    },
    "root": {"handlers": ["out"], "level": LEVEL},
    "loggers": {
        "django": {"handlers": [], "level": LEVEL, "propagate": True},
        "django.request": {"filters": ["told"]},
        "django.server": {"handlers": [], "level": LEVEL, "propagate": True},
        # Of each task it would say that it began and that it ended; the operations say that better.
        "django-q": {"level": "WARNING"},
        "asyncio": {"level": "WARNING"},
    },
}
