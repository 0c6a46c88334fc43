"""English words whose family their spelling does not tell: what the rules of `word_families` cannot know."""

import re


def _read_families(text: str) -> dict[str, str]:
    """Returns for each form the first word of its family; families are separated by semicolons and lines."""
    families = [family.split() for family in re.split(r"[;\n]", text.strip())]
    return {form: base for base, *forms in families for form in forms}


def _read_words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Looked up as they stand in a text, as "founded" is not of "find".
IRREGULAR_FORMS = _read_families("""
bus buses; dye dyed; eye eyed; free freed; gas gases; hindu hindus; israeli israelis; lens lenses; nazi nazis
owe owed owing; rabbi rabbis; sue sued suing; taxi taxis
be am are is was were been being; bear bore born borne; beat beaten; become became; begin began begun; bend bent
bind bound; bite bit bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought; build built
burn burnt; buy bought; catch caught; child children; choose chose chosen; cling clung; come came; creep crept
deal dealt; die dying; dig dug; do did done does doing; draw drew drawn; dream dreamt; drink drank drunk
drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt; fight fought; fling flung
fly flew flown; foot feet; forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven
freeze froze frozen; get got gotten; give gave given; go went gone goes going; good better best; goose geese
grind ground; grow grew grown; hang hung; have has had having; hear heard; hide hid hidden; hold held; keep kept
kneel knelt; know knew known; lay laid; lead led; leap leapt; learn learnt; leave left leaving; lend lent; lie lying
life lives; light lit; lose lost; make made; man men; mean meant; meet met; mouse mice; pay paid; ride rode ridden
ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell sold; send sent
shake shook shaken; shine shone; shoot shot; shrink shrank shrunk; sing sang sung; sink sank sunk; sit sat
sleep slept; slide slid; speak spoke spoken; spend spent; spin spun; spring sprang sprung; stand stood
steal stole stolen; stick stuck; sting stung; strike struck stricken; strive strove; swear swore sworn; sweep swept
swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think thought
throw threw thrown; tie tying; tooth teeth; understand understood; uphold upheld; wake woke woken; wear wore worn
weave wove woven; weep wept; win won; wind wound; withdraw withdrew withdrawn; withhold withheld
withstand withstood; wolf wolves; woman women; write wrote written
""")


# Looked up at each step, while suffixes are taken off.
FAMILIES = _read_families("""
able ability disability disabled; like dislike; name rename
asia asian; counsel counselor; cube cubic; define definite definition definitive; fame famous; fate fatal; find found
mute mutation; oppose opposite opposition; practice practical; sail sailor; spine spinal; tax taxation; tide tidal
transit transition
locate relocate relocation; serve service; continue continuous continual continuation
act action active actor actress activist activate; add addition additive; advertise advertisement; age aging ageing
agree disagree; analyse analys analyst analytic analysis analytical analyze; anxious anxiety; aroma aromatic
art artist artistic; author authority authorize; base basis basic; bear birth; bleed blood
britain british brit briton; broad breadth; capable capacity; carry carriage carrier; china chinese; choose choice
circle circular circulate; cite citation; clear clarity clarify; coincide coincidence
compete competition competitive competitor; constitute constituency constituent
contend contention contentious contender; criterion criteria; custody custodian; cycle cyclist cyclic; deep depth
defense defence defend defensive defender defendant; denmark danish dane; deny denial
destroy destruction destructive destruct; detain detention; die dead death deadly; diplomat diplomacy diplomatic
divide division; donate donor; drama dramatic dramatist; duke duchess; edit edition editor editorial
eight eighth eighteen eighteenth eighty; empire emperor imperial; empower power; england english
err error erroneous; explain explanation explanatory; fail failure; feed food; finland finnish finn
five fifth fifteen fifteenth fifty; fly flight; four fourth fourteen fourteenth forty; france french; fuse fusion
germany german germanic; give gift; god goddess; golf golfer; greece greek; grow growth; heal health
heir heritage inherit; hero heroic heroine heroism; high height; host hostess; hundred hundredth; hungary hungarian
hunger hungry; ice icy; ireland irish; kneel knee; know knowledge; laugh laughter
license licence; life live alive; long length; lose loss; maintain maintenance; marry marriage marital
metal metallic; miracle miraculous; moderate moderator; molecule molecular; monastery monastic
move motion movement motive mobile mobility; muscle muscular; music musician; nine ninth nineteen nineteenth ninety
nose nasal; note notation notable; number numerous numeric numerical; obey obedience obedient
occupy occupation occupant; offense offence offend offensive offender; one first once; permit permission
photograph photo; please pleasant pleasure; poland polish; poor poverty; predator predatory predation
pretend pretense pretence; prince princess; pronounce pronunciation; propel propulsion propeller; prove proof proven
pursue pursuit; race racial racism racist; range ranger; rebel rebellion rebellious; rectangle rectangular
repeat repetition repetitive; retain retention; revolve revolution revolutionary; rotate rotary rotation rotor
school scholar; science scientific scientist; scotland scottish scot scotsman; secret secrecy; see sight; sell sale
seven seventh seventeen seventeenth seventy; shoot shot; sing song; single singular
six sixth sixteen sixteenth sixty; sleep asleep; social society societal socio; spain spanish spaniard; speak speech
statistic statistical; strong strength; succeed success succession successor successive; sun solar
sweden swedish swede; tell tale; ten tenth; territory territorial; think thought; thousand thousandth
three third thirteen thirteenth thirty thirtieth; title titular; triangle triangular; true truth; try trial
turkey turkish turk; two second twice twelve twelfth twenty twentieth; urge urgent; use usage
vary variety various variable variation variant; vision visible visual visibility; voice vocal; wake awake
wales welsh; wealth wealthy; wide width; wise wisdom; withdraw withdrawal; young youth youngster
""")


# Words that look longer than they are: "county" is not "count" with -y, nor "animal" of "animation".
WHOLE = _read_words("""
intervene
advantage animal apartment apply army arrest ash average banner battery better bias body border bully butter camp
canon capital career caress carry cellar chapter chest city collar commence comment company compare comply condition
consist content contest continent copper copy corner council counter country county course cover current department
digest dinner dinosaur dollar early earnest evening every exist experiment factor family ferry figure finger flower
forest former gallery garden general guest guitar hammer handsome hangar harvest honest hospital hotel hunger
implant implement important infant insist install instant intense intensive interest invest italy journal july
ladder lady lambert language leather letter listen manner massage master matter message mineral minister modest
moment navy never news nuclear number offer officer order organize other paper party patient pepper persist pillar
popular portray position positive post posture potter powder prefer prevalent prevent previous priest prince prison
promise proper property protest quality quarter quest question rally range recall regular reply request resist
restore rubber secretary sector senior several shelter shoulder shower silver sister slipper soldier special species
spirit stadium station statue stature status steward story study suggest summer supper supply survive sweater
tempest template temple tender test testify theory torture total tower traffic university venture veteran victor
village vinegar vinyl virginia wallet warrant warren weather western whisper winter wonder yesterday
""")


# Beginnings that look like a prefix and are none: "report" is not of "port".
UNPREFIXED = _read_words("""
reason enhanc disrupt dispos discourag discret
antiqu disciplin discount discover discus discuss diseas disguis dish dismal dismay dismiss dispers display disput
dissolv distal distanc distant distort distribut district enabl encounter engag engin england english enough ensembl
enter entir entitl entranc entrepreneur envelop illumin illustr immediat impl inaugur incent incorpor individual
indonesia industr infiltr infiltrat initial innocent innov instanc instru integr intelligent interfer interior
internal international interven interview intim invent investig involv irrit mischief missing mission mistak mister
mistress recall receiv recent recit reckon recogniz recoil recommend record recover recruit refer reflect reform
refug refus regard region regular relat relativ releas relevant relief religion rely remain remark remed remember
remind remot remov renown repair repeat replac reply report represent republic request requir rescu research resembl
reserv resid resign resist resolv resort resourc respect respond rest restaurant restor restrict result retail
retain retir retreat return reveal reveng revenu review revis reward superintend superior supervis transf transl
transm transp unanimous uncles under uniform union uniqu united units unity univers university until
""")


# Latin roots, which are no words of their own in English, or quite other words, when a prefix is taken off.
BOUND_ROOTS = _read_words("""
cap cas cept cert cess cid clin clud clus cord creas cred cret cru cur dic dict duc duct dust fam fect fend fens fer
fid flam flat flect flict form fus gen gest grad gred greg gress hab her hes hibit ject lat lav lect leg lev mand
med mens ment mer mers min mis mit mot mun nov ord par part pass pater pect pel pend pens per pet plac plant plas
ple plet plic plor pon port pos post press pris priv proch prov puls pur put quir rupt scend sci script sec sens
sent serv sid sign sist sol solut spect spir spond stall stanc stant stat stinct stitut struct sult sum sumpt tach
tact tain tect tegr tel tempt ten tend tens tent term tern terr test tim tir tom tort tract treat tribut trud turb
vad val van velop vent vers vert vest vid vis vit voc vok volut volv
""")
