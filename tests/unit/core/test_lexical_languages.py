"""Language detection on texts of the lengths that documents have."""

import pytest

from core.lexical import detect_language, languages

TEXTS = {
    "en": "The employee may end this contract with a notice period of three months. The notice "
    "has to be given in writing, and it must be signed by the person who gives it. If there is no "
    "written notice, then the contract continues as before.",
    "de": "Der Arbeitnehmer kann diesen Vertrag mit einer Frist von drei Monaten kündigen. Die "
    "Kündigung muss schriftlich erfolgen und von der Person unterschrieben werden, die sie "
    "ausspricht. Wenn sie nicht schriftlich ist, besteht der Vertrag wie bisher.",
    "fr": "Le salarié peut mettre fin à ce contrat avec un préavis de trois mois. Le préavis "
    "doit être donné par écrit et il doit être signé par la personne qui le donne. Sans préavis "
    "écrit, le contrat continue comme avant dans tous les cas.",
    "es": "El empleado puede terminar este contrato con un preaviso de tres meses. El preaviso "
    "debe darse por escrito y tiene que estar firmado por la persona que lo da. Si no hay preaviso "
    "por escrito, el contrato sigue como antes.",
    "ru": "Работник может расторгнуть этот договор с уведомлением за три месяца. Уведомление "
    "должно быть дано в письменной форме и подписано тем, кто его дает. Если такого "
    "уведомления нет, то договор действует как прежде для всех сторон.",
    "hi": "कर्मचारी इस अनुबंध को तीन महीने की सूचना के साथ समाप्त कर सकता है। सूचना लिखित रूप में "
    "दी जानी चाहिए और उस व्यक्ति के द्वारा हस्ताक्षरित होनी चाहिए जो इसे देता है। यदि लिखित "
    "सूचना नहीं है तो अनुबंध पहले की तरह जारी रहता है।",
    "zh": "员工可以提前三个月通知终止本合同。通知必须以书面形式发出，并由发出通知的人签字。",
    "ja": "従業員は三か月前に通知することで、この契約を終了することができます。",
    "ko": "직원은 삼 개월 전에 통지하여 이 계약을 종료할 수 있습니다.",
    "th": "พนักงานอาจบอกเลิกสัญญานี้โดยแจ้งล่วงหน้าสามเดือน",
    "el": "Ο εργαζόμενος μπορεί να καταγγείλει τη σύμβαση με προειδοποίηση τριών μηνών.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_paragraph_is_recognised(language: str) -> None:
    assert detect_language(TEXTS[language]) == language


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "ru", "hi", "zh", "ja", "ko", "th"])
def test_clear_texts_need_no_model(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> object:
        raise AssertionError("the model was loaded for a clear text")

    monkeypatch.setattr(languages, "_identifier", refuse)
    assert detect_language(TEXTS[language]) == language


@pytest.mark.parametrize("text", ["", "12.5 | 1,250 | 7", "PX-200", "…"])
def test_too_few_letters_are_undetermined(text: str) -> None:
    assert detect_language(text) == "und"


def test_spanish_names_do_not_make_a_text_spanish() -> None:
    text = (
        "Professional teams in Southern California include teams from the NFL (Los Angeles Rams, "
        "San Diego Chargers); NBA (Los Angeles Lakers, Los Angeles Clippers); MLB (Los Angeles "
        "Dodgers, Los Angeles Angels of Anaheim, San Diego Padres); NHL (Los Angeles Kings)."
    )
    assert detect_language(text) == "en"


def test_a_short_german_line_goes_to_the_model() -> None:
    assert detect_language("Kündigung des Mietvertrags zum Jahresende") == "de"


def test_an_english_cover_page_does_not_decide() -> None:
    assert detect_language(TEXTS["en"] * 3 + TEXTS["de"] * 60) == "de"


def test_the_language_does_not_depend_on_what_was_asked_before() -> None:
    first = detect_language("Kündigung des Mietvertrags zum Jahresende")
    detect_language("договор аренды")
    assert detect_language("Kündigung des Mietvertrags zum Jahresende") == first
