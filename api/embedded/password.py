"""Another password for the console of a service that runs: only its own process may write."""

import http.client
import json
from typing import Final
from urllib.parse import urlsplit

from headrace.errors import HeadraceError

SECONDS: Final = 10.0


class PasswordNotReplaced(HeadraceError):
    """The service that runs did not make another password."""

    code = "PASSWORD_NOT_REPLACED"


def another_password(api_url: str, token: str) -> str:
    """The new password.

    :param token: of the operator's owner key.
    :raises PasswordNotReplaced: the service does not answer, or says no.
    """
    place = urlsplit(api_url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=SECONDS)
    try:
        connection.request(
            "POST", "/console/password", headers={"Authorization": f"Bearer {token}"}
        )
        answer = json.loads(connection.getresponse().read())
        password = answer.get("password")
        said = str(answer.get("detail", "The answer is none."))
    except (OSError, http.client.HTTPException, ValueError) as error:
        password, said = None, f"{api_url} does not answer: {error}"
    finally:
        connection.close()
    if not isinstance(password, str):
        raise PasswordNotReplaced(
            said, hint="Stop it with `headrace down`, then: headrace up --new-password"
        )
    return password
