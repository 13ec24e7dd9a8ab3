"""Patterns of the checks, in Arabic, Chinese, English and Persian."""

import re

ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#[0-9]{2,6}|#x[0-9a-fA-F]{2,6});")
# PDF readers that reverse the ligature of lam and alef: األسرة for الأسرة, which no word begins with.
REVERSED = re.compile(r"(?<!\w)[وفبك]?ا(?:أل|إل|آل)\w")
LOST = re.compile(r"\?{4,}")
# The article may follow a particle: بالفقرة, والفقرة, للفقرة.
_THINGS = r"(?:ال|لل)(?:شكل|رسم|مخطط|صور[ةه]|جدول|خريط[ةه]|منحنى|بياني)"
_PASSAGES = r"(?:ال|لل)(?:نص|فقر[ةه]|قطع[ةه]|قصيد[ةه]|أبيات|ابيات)"
_WHERE = (
    r"(?:التالي[ةه]?|الآتي[ةه]?|الاتي[ةه]?|المقابل[ةه]?|المجاور[ةه]?|أعلاه|اعلاه|أدناه|ادناه|السابق[ةه]?|المرفق[ةه]?|"
    r"الموضح[ةه]?|المرسوم[ةه]?|(?:التي\s+|الذي\s+)?[أا]مامك)"
)
_ON = r"(?:(?:استناد|رجوع|نظر)[ًا]*\s+[إا]لى|بناء[ًا]*\s+على|من\s+خلال|كما\s+ورد\s+في)"
_BY = rf"(?<!\w)(?:ب?حسب|(?:وفق|طبق)[ًا]*|{_ON})"
_LOOK = r"(?<!\w)(?:[اأ]نظر|لاحظ|تأمل|شاهد|شوف)(?:\s+(?:[إا]لى|في))?"
ABSENT_THING = re.compile(
    rf"{_THINGS}(?:\s+البياني[ةه]?)?\s+{_WHERE}"
    # Not الشكل القانوني, الصورة الشعرية, على الشكل 2س + 3.
    rf"|{_BY}\s+{_THINGS}(?:\s+البياني[ةه]?)?(?=\s*[،,:؟?])"
    rf"|{_LOOK}\s+{_THINGS}(?:\s+البياني[ةه]?)?(?=\s*(?:[.،,:؟?!]|$)|\s+(?:ثم|و\w+)(?!\w))"
    r"|(?:ال|لل)(?:شكل|رسم|صور[ةه])\s+(?:رقم\s*[(\[]?\s*\d{1,2}(?!\d)|[(\[]\s*\d{1,2}\s*[)\]])"
    r"|\b(?:figure|table|image|picture|diagram|graph|chart|map)s?\s+(?:below|above|shown|opposite)\b"
    r"|\b(?:following|above|below|given)\s+(?:figure|table|image|picture|diagram|graph|chart|map)\b"
    # Not 例如图像, 网上图片, 以下表述, 在数轴上表示, 会上表扬, 上表皮.
    r"|(?:(?<![例比诸諸譬])如|(?<![网網墙牆皇])上|[下右左])"
    r"(?:[图圖](?![书書画畫])|表(?![述达達现現情演面明彰决決态態示扬揚皮白率层層]))"
    r"|(?:ش[کك]ل|تصو[یي]ر|جدول|نمودار|نقشه)\s+(?:ز[یي]ر|بالا|مقابل|فوق|روبه?\s*رو)",
    re.IGNORECASE,
)
# What only text before the question can be, and what only a typesetter can show.
BEFORE = re.compile(r"(?:السابق[ةه]?|أعلاه|اعلاه|above|بالا)$", re.IGNORECASE)
UNDERLINED = re.compile(
    r"تحته[اما]*\s+خط|(?:المخطوط|المسطر)\s+تحته[اما]*|\bunderlined\b|[划畫画]线(?:的?[词字句]|部分)|زیر\s*آن\s*خط",
    re.IGNORECASE,
)
ABSENT_PASSAGE = re.compile(
    rf"{_PASSAGES}\s+{_WHERE}|\b(?:passage|text|paragraph|poem)\s+(?:below|above)\b"
    r"|\b(?:following|above|below|given)\s+(?:passage|text|paragraph|poem)\b"
    r"|\b(?:according\s+to|based\s+on)\s+th(?:e|is)\s+(?:passage|text|paragraph|poem|story|author)\b(?!\s+(?:of|in|by)\b)"
    r"|\b(?:in|from)\s+th(?:e|is)\s+passage\b(?!\s+(?:of|in|from|to|through)\b)"
    # Not وفقا للنص القرآني, حسب الفقرة 3 من المادة.
    rf"|{_BY}\s+{_PASSAGES}(?=\s*[،,:؟?])"
    r"|(?:متن|شعر|ب[یي]ت)\s+(?:ز[یي]ر|بالا|فوق)"
    r"|(?:[根依][据據]|[阅閱][读讀])[上下](?:文(?![化件])|[面列述]的?(?:短文|材料|文字|文章|段落))",
    re.IGNORECASE,
)
OWN_PASSAGE = 12  # words beside the reference that may be the passage itself
OWN_LETTERS = 100  # likewise of Chinese, which has no spaces
# A quotation, or a passage after a colon; in Chinese a whole sentence after a colon or another sentence.
QUOTED = re.compile(r"[\"«“(\[{]|[:：]\s*\S+\s+\S+|[:：。][^:：。（）]{8,}。")

# Options that refer to other options.
_EVERY = r"(?:جميع|كل|كافة|كلا?|أي|اي)"
_NONE = r"(?:ال?\s*شي[ءئ]|الشى[ءئ]|لا\s*شيء?|لاشيء|لا\s*شئ|لاشئ|ليس|لا\s+أحد|لا\s+احد|لا\s+واحد[ةه]?)"
_ABOVE = (
    r"(?:ما\s*سبق|مما\s*سبق|ما\s*ذكر|مما\s*ذكر|ما\s*تقدم|مما\s*تقدم|السابق[ةه]?|"
    r"(?:هذه\s+)?(?:الإجابات|الاجابات|الخيارات|البدائل|الاختيارات|الأجوبة)[^،؛]{0,25})"
)
_CHINESE = "(?:都|皆|全|均|全部)?(?:不?是|不?对|不?正确|错误|非|不成立)"
_OF_OPTIONS = (
    rf"{_EVERY}\s+{_ABOVE}.{{0,20}}",
    rf"{_NONE}\s+(?:من\s+)?{_ABOVE}.{{0,20}}",
    r"لا\s+(?:يوجد|توجد)\s+[إا]جاب[ةه]\s+صحيح[ةه]",
    r"(?:جميعها|كلها|كلاهما)(?:\s+(?:صحيح|خاطئ|خطأ).{0,6})?",
    r"(?:all|none|any|both)\s+(?:of\s+)?(?:the\s+)?(?:above|previous|these|answers|options|choices).{0,20}",
    r"(?:all|none|both)\s+(?:are\s+)?(?:correct|true|right|wrong)",
    rf"以上(?:选项|答案|说法|所述|各项|[两二三四]项|所有|全部)*{_CHINESE}?|(?:都|皆|全|均|全部)+(?:不?是|不?对|不?正确|错误)",
    r"(?:هم(?:ه\s*[یي\u0654]?|\u06c0)|تمام[یي]?|[کك]ل[یي]ه\s*[یي\u0654]?)\s*(?:موارد|گز[یي]نه\s*ها).{0,15}",
    # Not of anything but options: هیچ یک از پیامبران
    r"ه[یي]چ\s*(?:[کك]دام|[یي][کك]\b)(?:\s+از\s+(?:موارد|گز[یي]نه|پاسخ|جواب|ا[یي]ن|آن).{0,25}|(?!\s+از\b).{0,20})",
    r"هر\s+(?:دو|سه|چهار)\s+(?:مورد|گزینه).{0,10}",
)
REFERS = re.compile("|".join(f"(?:{one})" for one in _OF_OPTIONS), re.IGNORECASE)
_LABELS = r"(?:[A-Ea-e]|الف|[أابجد]|هـ?)"
NAMES_LABELS = re.compile(
    rf"(?:(?:كلا?\s+من|both|neither|الإجابتان|الاجابتان|گزینه\S*|موارد)\s+)?\(?{_LABELS}\)?"
    rf"\s*(?:و|and|nor|&|\+|،|,|和|与|及|、)\s*\(?{_LABELS}\)?"
    r"(?:\s*(?:معا|معاً|صحيح.{0,6}|فقط|only|(?:are\s+)?(?:correct|true)|[都均皆]?(?:不?对|不?正确|是)))?"
    r"|[A-E]{2,4}[都均皆](?:不?对|不?正确|是)",
    re.IGNORECASE,
)
MARKED = re.compile(
    r"[(\[{<]\s*(?:هذه\s+هي\s+)?(?:ال)?(?:إجابة|اجابة|جواب|خيار|صحيح|صواب|خطأ|صح)[ةه]?(?:\s+(?:ال)?(?:صحيح|خاطئ|خطأ|نموذجي)[ةه]?)?\s*[)\]}>]\s*$"
    r"|[(\[{<]\s*(?:the\s+)?(?:correct|right|true|wrong)(?:\s+(?:answer|option|choice))?\s*[)\]}>]\s*$"
    r"|[(\[（【]\s*(?:正确答案|正确|对)\s*[)\]）】]\s*$|[✓✔✅☑❌✗✘]",
    re.IGNORECASE,
)
STARS = re.compile(
    r"\*{1,3}\s*(?P<after>[^\W\d_]{2}[^*&=;{}<>+]*)\*{0,3}|"
    r"(?P<before>[^\W\d_][^*&=;{}<>+]*[^\W\d_]{2}[\u064b-\u0652]?)\*{1,3}"
)
